-- +goose Up

-- One row for each renewal and revocation of a token, in the order in which they were committed.
CREATE TABLE token_changes (
    id       INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    at       DATETIME NOT NULL,
    token_id INTEGER  NOT NULL,
    change   TEXT     NOT NULL CHECK (change IN ('renewed', 'revoked'))
);
INSERT INTO token_changes (at, token_id, change)
    SELECT renewed_at AS at, id, 'renewed' AS change FROM tokens WHERE renewed_at IS NOT NULL
    UNION ALL SELECT revoked_at, id, 'revoked' FROM tokens WHERE revoked_at IS NOT NULL ORDER BY at, id;

-- Earlier releases, which only set the times, may still run.
-- +goose StatementBegin
CREATE TRIGGER tokens_renewed AFTER UPDATE OF renewed_at ON tokens WHEN NEW.renewed_at IS NOT OLD.renewed_at BEGIN
    INSERT INTO token_changes (at, token_id, change) VALUES (NEW.renewed_at, NEW.id, 'renewed');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER tokens_revoked AFTER UPDATE OF revoked_at ON tokens WHEN NEW.revoked_at IS NOT OLD.revoked_at BEGIN
    INSERT INTO token_changes (at, token_id, change) VALUES (NEW.revoked_at, NEW.id, 'revoked');
END;
-- +goose StatementEnd

-- Deletions by earlier releases have no row in provider_changes.
INSERT INTO provider_changes (at, pk, change, fields, os_user)
    SELECT deleted_at, pk, 'deleted', '[]', '' FROM deleted_providers
    WHERE NOT EXISTS (SELECT 1 FROM provider_changes WHERE provider_changes.pk = deleted_providers.pk
        AND change = 'deleted') ORDER BY deleted_at, pk;
