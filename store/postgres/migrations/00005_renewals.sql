-- +goose Up

-- Renewals are only in token_changes. Some programs between releases had a column for them. Without one, nothing is
-- locked or changed.
-- +goose StatementBegin
DO $migration$
BEGIN
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'tokens'::regclass AND attname = 'renewed_at') THEN
        INSERT INTO token_changes (at, token_id, change)
            SELECT renewed_at, id, 'renewed' FROM tokens WHERE renewed_at IS NOT NULL AND NOT EXISTS (
                SELECT FROM token_changes WHERE token_id = tokens.id AND change = 'renewed') ORDER BY renewed_at, id;
        DROP TRIGGER tokens_changed ON tokens;
        ALTER TABLE tokens DROP COLUMN renewed_at;
        CREATE OR REPLACE FUNCTION add_token_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.revoked_at IS DISTINCT FROM OLD.revoked_at THEN
        INSERT INTO token_changes (at, token_id, change) VALUES (NEW.revoked_at, NEW.id, 'revoked');
    END IF;
    RETURN NULL;
END
$$;
        CREATE TRIGGER tokens_changed AFTER UPDATE OF revoked_at ON tokens
            FOR EACH ROW EXECUTE FUNCTION add_token_change();
    END IF;
END
$migration$;
-- +goose StatementEnd
