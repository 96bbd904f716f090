-- +goose Up

-- Renewals are only in token_changes. Some programs before this release had a column for them.
DROP TRIGGER tokens_changed ON tokens;
ALTER TABLE tokens DROP COLUMN IF EXISTS renewed_at;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION add_token_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.revoked_at IS DISTINCT FROM OLD.revoked_at THEN
        INSERT INTO token_changes (at, token_id, change) VALUES (NEW.revoked_at, NEW.id, 'revoked');
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER tokens_changed AFTER UPDATE OF revoked_at ON tokens
    FOR EACH ROW EXECUTE FUNCTION add_token_change();
