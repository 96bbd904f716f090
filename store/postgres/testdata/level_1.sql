-- What a program of level 1 sends, with values. A schema that says that such programs may use it must take all of it.
BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT oldest_level, current_setting('transaction_read_only'), set_config('synchronous_commit', 'on', true),
    pg_logical_emit_message(true, 'providerd', '')::text FROM schema_support;
SELECT nextval('providers_pk_seq') FROM generate_series(1, 3);
SELECT coalesce((SELECT pk FROM providers WHERE created_by = column1 AND kind = column2 AND idempotency_key = column3), 0)
    FROM (VALUES ('ci', 'oauth2', 'key')) AS scopes;
INSERT INTO providers (pk, kind, name, created_at, created_by, request_id, remote_address, idempotency_key, fingerprint)
    SELECT pk, kind, name, created_at, created_by, request_id, remote_address, idempotency_key, fingerprint
    FROM json_populate_recordset(NULL::providers, '[
        {"pk":1,"kind":"oauth2","name":"a","created_at":"2026-01-02T03:04:05Z","created_by":"ci","request_id":"r",
         "remote_address":"127.0.0.1","idempotency_key":"key","fingerprint":"\\x00"},
        {"pk":2,"kind":"workspace_directory","name":"b","created_at":"2026-01-02T03:04:05Z","created_by":"ci",
         "request_id":"s","remote_address":"127.0.0.1","idempotency_key":null,"fingerprint":null}]'::json)
    ON CONFLICT DO NOTHING;
INSERT INTO oauth2_providers (pk, authentication_flow, authorization_flow, property_mappings, client_type, client_id,
    access_code_validity, access_token_validity, refresh_token_validity, include_claims_in_id_token, signing_key,
    redirect_uris, sub_mode, issuer_mode, jwks_sources, client_secret)
    VALUES (1, NULL, '3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01', '[]', 'public', 'id', 'minutes=1', 'hours=1', 'days=30',
    true, NULL, '', 'user_id', 'global', '[]', '\x00') ON CONFLICT DO NOTHING;
INSERT INTO workspace_directory_providers (pk, property_mappings, property_mappings_group, delegated_subject, scopes,
    exclude_users_service_account, filter_group, user_delete_action, group_delete_action, default_group_email_domain,
    credentials)
    VALUES (2, '[]', '[]', 'a@example.com', '', false, NULL, 'suspend', 'delete', 'example.com', '\x00')
    ON CONFLICT DO NOTHING;
SELECT pk, request_id FROM providers WHERE pk IN (1, 2);
SELECT count(*) FROM oauth2_providers WHERE client_id IN ('id');
COMMIT;
INSERT INTO tokens (name, prefix, digest, operations, created_at, expires_at, revoked_at)
    VALUES ('ci', 'pvd_abcdef', '\x00', '["providers_oauth2_create"]', now(), now(), NULL) RETURNING id;
UPDATE tokens SET revoked_at = now() WHERE id = 1 AND revoked_at IS NULL;
INSERT INTO key_events (at, event, key_id) VALUES (now(), 'key created', 1) RETURNING id;
INSERT INTO keyset (pk, sealed, fingerprint) VALUES (1, '\x00', '\x00') ON CONFLICT DO NOTHING;
INSERT INTO replicas (id, name, keys, beat) VALUES ('x', 'host', '[1]', 1)
    ON CONFLICT (id) DO UPDATE SET keys = excluded.keys, beat = replicas.beat + 1;
INSERT INTO applications (slug, name, provider_pk) VALUES ('wiki', 'Wiki', 1) RETURNING id;
INSERT INTO backchannels (provider_pk, application_id) VALUES (2, 1);
UPDATE oauth2_providers SET client_secret = '\x01' WHERE pk = 1;
