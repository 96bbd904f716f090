-- +goose Up

-- Renewals are only in token_changes.
DROP TRIGGER tokens_renewed;
DROP INDEX tokens_renewed_at;
ALTER TABLE tokens DROP COLUMN renewed_at;
