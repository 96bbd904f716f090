-- +goose Up

ALTER TABLE providers ADD COLUMN remote_address TEXT NOT NULL DEFAULT '';

-- What was done with the keys of the database, and with which key.
CREATE TABLE key_events (
    id     INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    at     DATETIME NOT NULL,
    event  TEXT     NOT NULL,
    key_id INTEGER  NOT NULL
);

-- One row, by which a keyset is known to be that of this database.
CREATE TABLE keyset (
    pk          INTEGER NOT NULL PRIMARY KEY CHECK (pk = 1),
    sealed      BLOB    NOT NULL,
    fingerprint BLOB    NOT NULL
);
