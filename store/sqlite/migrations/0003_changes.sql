-- +goose Up

-- One row for each change of a stored provider, which outlives the provider; values are never part of it.
CREATE TABLE provider_changes (
    id          INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    at          DATETIME NOT NULL,
    pk          INTEGER  NOT NULL,
    change      TEXT     NOT NULL CHECK (change IN ('updated', 'renamed', 'deleted')),
    -- The names of the fields that were changed.
    fields      TEXT     NOT NULL,
    -- The user of the operating system who made the change.
    os_user     TEXT     NOT NULL,
    -- The hash of the record before the change.
    leaf_before BLOB
);
CREATE INDEX provider_changes_at ON provider_changes (at, id);
CREATE INDEX provider_changes_pk ON provider_changes (pk);

-- When a token of the same name and operations replaced it.
ALTER TABLE tokens ADD COLUMN renewed_at DATETIME;
CREATE INDEX tokens_renewed_at ON tokens (renewed_at, id);
