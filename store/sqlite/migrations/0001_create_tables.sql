-- +goose Up

-- One row for every provider of either kind: the audit record of its creation.
CREATE TABLE providers (
    pk              INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT CHECK (pk BETWEEN 1 AND 2147483647),
    kind            TEXT     NOT NULL CHECK (kind IN ('oauth2', 'workspace_directory')),
    name            TEXT     NOT NULL,
    created_at      DATETIME NOT NULL,
    created_by      TEXT     NOT NULL,
    request_id      TEXT     NOT NULL,
    remote_address  TEXT     NOT NULL,
    -- An idempotency key belongs to one caller and one operation, and lives as long as the record that it made.
    idempotency_key TEXT,
    -- HMAC of the digest of the body; goes with the key.
    fingerprint     BLOB
);
CREATE UNIQUE INDEX providers_idempotency_key ON providers (created_by, kind, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

CREATE TABLE oauth2_providers (
    pk                         INTEGER NOT NULL PRIMARY KEY REFERENCES providers (pk),
    authentication_flow        TEXT,
    authorization_flow         TEXT    NOT NULL,
    property_mappings          TEXT    NOT NULL,
    client_type                TEXT    NOT NULL,
    client_id                  TEXT    NOT NULL UNIQUE,
    -- Encrypted.
    client_secret              BLOB    NOT NULL,
    access_code_validity       TEXT    NOT NULL,
    access_token_validity      TEXT    NOT NULL,
    refresh_token_validity     TEXT    NOT NULL,
    include_claims_in_id_token BOOLEAN NOT NULL,
    signing_key                TEXT,
    redirect_uris              TEXT    NOT NULL,
    sub_mode                   TEXT    NOT NULL,
    issuer_mode                TEXT    NOT NULL,
    jwks_sources               TEXT    NOT NULL
);

CREATE TABLE workspace_directory_providers (
    pk                            INTEGER NOT NULL PRIMARY KEY REFERENCES providers (pk),
    property_mappings             TEXT    NOT NULL,
    property_mappings_group       TEXT    NOT NULL,
    delegated_subject             TEXT    NOT NULL,
    -- Encrypted.
    credentials                   BLOB    NOT NULL,
    scopes                        TEXT    NOT NULL,
    exclude_users_service_account BOOLEAN NOT NULL,
    filter_group                  TEXT,
    user_delete_action            TEXT    NOT NULL,
    group_delete_action           TEXT    NOT NULL,
    default_group_email_domain    TEXT    NOT NULL
);

CREATE TABLE applications (
    id          INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    slug        TEXT    NOT NULL UNIQUE,
    name        TEXT    NOT NULL,
    provider_pk INTEGER UNIQUE REFERENCES oauth2_providers (pk)
);

-- A provider serves at most one application as its backchannel; an application has any number of them.
CREATE TABLE backchannels (
    provider_pk    INTEGER NOT NULL PRIMARY KEY REFERENCES providers (pk),
    application_id INTEGER NOT NULL REFERENCES applications (id)
);
CREATE INDEX backchannels_application_id ON backchannels (application_id);

CREATE TABLE tokens (
    id         INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    name       TEXT     NOT NULL,
    prefix     TEXT     NOT NULL,
    digest     BLOB     NOT NULL UNIQUE,
    operations TEXT     NOT NULL,
    created_at DATETIME NOT NULL,
    expires_at DATETIME NOT NULL,
    revoked_at DATETIME
);

-- What was done with the keys of the database, and with which key.
CREATE TABLE key_events (
    id     INTEGER  NOT NULL PRIMARY KEY AUTOINCREMENT,
    at     DATETIME NOT NULL,
    event  TEXT     NOT NULL,
    key_id INTEGER  NOT NULL
);

-- One row: the data keys, which a master key encrypts with the id of the database as associated data. The version is
-- random and changes with every change of the row. It is empty in an unfinished copy.
CREATE TABLE keyset (
    pk          INTEGER NOT NULL PRIMARY KEY CHECK (pk = 1),
    version     BLOB    NOT NULL,
    database_id BLOB    NOT NULL,
    secret_keys BLOB    NOT NULL,
    digest_key  BLOB    NOT NULL
);
