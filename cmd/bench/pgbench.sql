\set a random(1000000000000000000, 9000000000000000000)
\set b random(1000000000000000000, 9000000000000000000)
BEGIN;
SELECT nextval('providers_pk_seq') AS pk \gset
INSERT INTO providers (pk, kind, name, created_at, created_by, request_id, remote_address) VALUES (:pk, 'oauth2', 'bench 12345', now(), 'bench', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', '127.0.0.1');
INSERT INTO oauth2_providers (pk, authorization_flow, property_mappings, client_type, client_id, client_secret, access_code_validity, access_token_validity, refresh_token_validity, include_claims_in_id_token, redirect_uris, sub_mode, issuer_mode, jwks_sources) VALUES (:pk, '3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01', '[]', 'confidential', :a::bigint || 'ab' || :b::bigint, decode(repeat('5a', 161), 'hex'), 'minutes=1', 'hours=1', 'days=30', true, 'https://app12345.example.com/callback', 'user_uuid', 'per_provider', '[]');
COMMIT;
