-- +goose Up

-- A key belongs to one caller and one operation, and lives as long as the record that it made.
ALTER TABLE providers ADD COLUMN idempotency_key TEXT;
ALTER TABLE providers ADD COLUMN fingerprint BLOB;
CREATE UNIQUE INDEX providers_idempotency_key ON providers (created_by, kind, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
