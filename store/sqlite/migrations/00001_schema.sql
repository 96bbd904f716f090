-- +goose Up

-- One row for each provider. Times are in microseconds since 1970, in UTC. The columns from client_id on are settings;
-- those of the other kind are NULL. For IN with more than two values, SQLite would build an index in each statement.
CREATE TABLE providers (
    -- Chosen by the program, above those of deleted providers. AUTOINCREMENT would write another page in each create.
    pk              INTEGER NOT NULL PRIMARY KEY CHECK (pk >= 1),
    -- A UUIDv7 that the create chose before it was stored.
    uid             TEXT    NOT NULL UNIQUE CHECK (length(uid) = 36),
    kind            TEXT    NOT NULL CHECK (kind IN ('oauth2', 'workspace_directory')),
    name            TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    -- The name of the token.
    created_by      TEXT    NOT NULL,
    request_id      TEXT    NOT NULL,
    remote_address  TEXT    NOT NULL,
    -- An idempotency key belongs to one caller and one operation, and lives as long as the record that it made.
    idempotency_key TEXT,
    -- The client secret or the credentials, encrypted.
    secret          BLOB    NOT NULL,
    -- What the server chose: 1 for client_id, 2 for the secret, 3 for both.
    generated       INTEGER NOT NULL CHECK (generated BETWEEN 0 AND 3),

    client_id                     TEXT UNIQUE,
    property_mappings             TEXT NOT NULL,
    authentication_flow           TEXT,
    authorization_flow            TEXT,
    client_type                   TEXT CHECK (client_type IN ('confidential', 'public')),
    access_code_validity          TEXT,
    access_token_validity         TEXT,
    refresh_token_validity        TEXT,
    include_claims_in_id_token    INTEGER CHECK (include_claims_in_id_token IN (0, 1)),
    signing_key                   TEXT,
    redirect_uris                 TEXT,
    sub_mode                      TEXT CHECK (sub_mode IN ('hashed_user_id', 'user_id')
        OR sub_mode IN ('user_uuid', 'user_username') OR sub_mode IN ('user_email', 'user_upn')),
    issuer_mode                   TEXT CHECK (issuer_mode IN ('global', 'per_provider')),
    jwks_sources                  TEXT,
    property_mappings_group       TEXT,
    delegated_subject             TEXT,
    scopes                        TEXT,
    exclude_users_service_account INTEGER CHECK (exclude_users_service_account IN (0, 1)),
    filter_group                  TEXT,
    user_delete_action            TEXT CHECK (user_delete_action IN ('do_nothing', 'delete')
        OR user_delete_action = 'suspend'),
    group_delete_action           TEXT CHECK (group_delete_action IN ('do_nothing', 'delete')
        OR group_delete_action = 'suspend'),
    default_group_email_domain    TEXT,

    CHECK (kind <> 'oauth2' OR client_id IS NOT NULL AND authorization_flow IS NOT NULL AND client_type IS NOT NULL
        AND access_code_validity IS NOT NULL AND access_token_validity IS NOT NULL
        AND refresh_token_validity IS NOT NULL AND include_claims_in_id_token IS NOT NULL
        AND redirect_uris IS NOT NULL AND sub_mode IS NOT NULL AND issuer_mode IS NOT NULL
        AND jwks_sources IS NOT NULL AND property_mappings_group IS NULL AND delegated_subject IS NULL
        AND scopes IS NULL AND exclude_users_service_account IS NULL AND filter_group IS NULL
        AND user_delete_action IS NULL AND group_delete_action IS NULL AND default_group_email_domain IS NULL),
    CHECK (kind <> 'workspace_directory' OR client_id IS NULL AND property_mappings_group IS NOT NULL
        AND delegated_subject IS NOT NULL AND scopes IS NOT NULL AND exclude_users_service_account IS NOT NULL
        AND user_delete_action IS NOT NULL AND group_delete_action IS NOT NULL
        AND default_group_email_domain IS NOT NULL AND authentication_flow IS NULL AND authorization_flow IS NULL
        AND client_type IS NULL AND access_code_validity IS NULL AND access_token_validity IS NULL
        AND refresh_token_validity IS NULL AND include_claims_in_id_token IS NULL AND signing_key IS NULL
        AND redirect_uris IS NULL AND sub_mode IS NULL AND issuer_mode IS NULL AND jwks_sources IS NULL)
) STRICT;
CREATE UNIQUE INDEX providers_idempotency_key ON providers (created_by, kind, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

CREATE TABLE applications (
    id          INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    slug        TEXT    NOT NULL UNIQUE,
    name        TEXT    NOT NULL,
    provider_pk INTEGER UNIQUE REFERENCES providers (pk)
) STRICT;

-- A provider serves at most one application as its backchannel; an application has any number of them.
CREATE TABLE backchannels (
    provider_pk    INTEGER NOT NULL PRIMARY KEY REFERENCES providers (pk),
    application_id INTEGER NOT NULL REFERENCES applications (id)
) STRICT;
CREATE INDEX backchannels_application_id ON backchannels (application_id);

CREATE TABLE tokens (
    id         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL,
    prefix     TEXT    NOT NULL,
    digest     BLOB    NOT NULL UNIQUE,
    operations TEXT    NOT NULL,
    -- Until the year 9999.
    created_at INTEGER NOT NULL CHECK (created_at BETWEEN 0 AND 253402300799999999),
    expires_at INTEGER NOT NULL CHECK (expires_at BETWEEN 0 AND 253402300799999999),
    revoked_at INTEGER CHECK (revoked_at BETWEEN 0 AND 253402300799999999)
) STRICT;

-- One row: the data keys, which a master key encrypts with the database's id as associated data. The version is random
-- and changes with the row. Each later migration must change it in its own transaction: inserts check nothing else.
CREATE TABLE keyset (
    pk          INTEGER NOT NULL PRIMARY KEY CHECK (pk = 1),
    version     BLOB    NOT NULL,
    database_id BLOB    NOT NULL,
    secret_keys BLOB    NOT NULL,
    digest_key  BLOB    NOT NULL
) STRICT;

-- What happened to providers, tokens, keys and the database, in the transaction that did it. Rows are only added, and
-- have no values of fields.
CREATE TABLE events (
    -- SQLite chooses the last one plus 1, but after 2^63-1 an unused one, which could be lower.
    id             INTEGER NOT NULL PRIMARY KEY CHECK (id BETWEEN 1 AND 9223372036854775806),
    -- Until the year 9999.
    at             INTEGER NOT NULL CHECK (at BETWEEN 0 AND 253402300799999999),
    event          TEXT    NOT NULL,
    -- The pk of the provider, or the id of the token or the key; 0 for the database.
    subject        INTEGER NOT NULL,
    -- The kind of the provider; empty for other events.
    kind           TEXT    NOT NULL CHECK (kind IN ('oauth2', 'workspace_directory') OR kind = ''),
    -- The name of the token; empty for other events.
    name           TEXT    NOT NULL,
    -- The names of the fields that were changed, separated by commas.
    fields         TEXT    NOT NULL,
    -- Of the request: the name of its token, and where it came from. Empty for commands.
    caller         TEXT    NOT NULL,
    request_id     TEXT    NOT NULL,
    remote_address TEXT    NOT NULL,
    -- The user of the operating system who ran the command. Empty for requests.
    os_user        TEXT    NOT NULL,
    CHECK ((kind <> '') = (event GLOB 'provider *'))
) STRICT;
CREATE INDEX events_event ON events (event, subject, id) WHERE event <> 'provider created';
-- +goose StatementBegin
CREATE TRIGGER providers_created AFTER INSERT ON providers BEGIN
    INSERT INTO events (at, event, subject, kind, name, fields, caller, request_id, remote_address, os_user)
    VALUES (NEW.created_at, 'provider created', NEW.pk, NEW.kind, '', '', NEW.created_by, NEW.request_id,
        NEW.remote_address, '');
END;
-- +goose StatementEnd
