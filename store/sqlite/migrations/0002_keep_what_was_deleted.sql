-- +goose Up

-- One row for every provider that was deleted: its creation and its deletion stay in the audit. Its idempotency key and
-- its secret do not stay.
CREATE TABLE deleted_providers (
    pk             INTEGER  NOT NULL PRIMARY KEY CHECK (pk BETWEEN 1 AND 2147483647),
    kind           TEXT     NOT NULL CHECK (kind IN ('oauth2', 'workspace_directory')),
    name           TEXT     NOT NULL,
    created_at     DATETIME NOT NULL,
    created_by     TEXT     NOT NULL,
    request_id     TEXT     NOT NULL,
    remote_address TEXT     NOT NULL,
    -- Empty for a provider that has none.
    client_id      TEXT     NOT NULL,
    deleted_at     DATETIME NOT NULL
);
CREATE INDEX deleted_providers_deleted_at ON deleted_providers (deleted_at, pk);

-- The audit is read in the order of time, page by page.
CREATE INDEX tokens_created_at ON tokens (created_at, id);
CREATE INDEX tokens_revoked_at ON tokens (revoked_at, id);
CREATE INDEX key_events_at ON key_events (at, id);
