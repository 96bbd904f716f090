-- +goose Up

-- One row for every provider that was deleted: its creation and its deletion stay in the audit. Its idempotency key and
-- its secret do not stay.
CREATE TABLE deleted_providers (
    pk             integer     NOT NULL PRIMARY KEY CHECK (pk >= 1),
    kind           text        NOT NULL CHECK (kind IN ('oauth2', 'workspace_directory')),
    name           text        NOT NULL,
    created_at     timestamptz NOT NULL,
    created_by     text        NOT NULL COLLATE "C",
    request_id     text        NOT NULL,
    remote_address text        NOT NULL,
    -- Empty for a provider that has none.
    client_id      text        NOT NULL COLLATE "C",
    deleted_at     timestamptz NOT NULL
);
CREATE INDEX deleted_providers_created_at ON deleted_providers (created_at, pk);
CREATE INDEX deleted_providers_deleted_at ON deleted_providers (deleted_at, pk);

-- The audit is read in the order of time, page by page.
CREATE INDEX tokens_created_at ON tokens (created_at, id);
CREATE INDEX tokens_revoked_at ON tokens (revoked_at, id);
CREATE INDEX key_events_at ON key_events (at, id);
