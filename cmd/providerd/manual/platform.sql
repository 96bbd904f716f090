-- Views without secrets and addresses, and a role that reads them. A superuser runs this in the database of providerd,
-- after the first "providerd serve", which creates the tables: psql "$ADMIN_DATABASE" --file platform.sql
\set ON_ERROR_STOP on
BEGIN;
CREATE OR REPLACE VIEW platform_providers AS
    SELECT pk, kind, name, created_at, created_by, client_id, client_type, authorization_flow, authentication_flow,
        property_mappings, redirect_uris, signing_key, sub_mode, issuer_mode, jwks_sources, include_claims_in_id_token,
        access_code_validity, access_token_validity, refresh_token_validity, property_mappings_group,
        delegated_subject, scopes, exclude_users_service_account, filter_group, user_delete_action,
        group_delete_action, default_group_email_domain
    FROM providers;

-- The seconds of a duration, such as 5400 for hours=1;minutes=30.
CREATE OR REPLACE FUNCTION platform_seconds(duration text) RETURNS numeric IMMUTABLE LANGUAGE sql AS $$
    SELECT sum(part[2]::numeric * seconds)
    FROM regexp_matches(duration, '([a-z]+)=([0-9.]+)', 'g') AS part
    JOIN (VALUES ('weeks', 604800), ('days', 86400), ('hours', 3600), ('minutes', 60), ('seconds', 1),
        ('milliseconds', 0.001), ('microseconds', 0.000001)) AS units (name, seconds) ON name = part[1]
$$;

-- Values that consist of parts, and the applications that providers are linked to.
CREATE OR REPLACE VIEW platform_settings AS
    SELECT providers.pk,
        array_remove(regexp_split_to_array(redirect_uris, '\r?\n'), '') AS redirect_uris,
        ARRAY(SELECT jsonb_array_elements_text(property_mappings)::uuid) AS property_mappings,
        ARRAY(SELECT jsonb_array_elements_text(property_mappings_group)::uuid) AS property_mappings_group,
        ARRAY(SELECT jsonb_array_elements_text(jwks_sources)::uuid) AS jwks_sources,
        platform_seconds(access_code_validity) AS access_code_seconds,
        platform_seconds(access_token_validity) AS access_token_seconds,
        platform_seconds(refresh_token_validity) AS refresh_token_seconds,
        assigned.slug AS application_slug, assigned.name AS application_name,
        backchannel.slug AS backchannel_application_slug, backchannel.name AS backchannel_application_name
    FROM providers
    LEFT JOIN applications AS assigned ON assigned.provider_pk = providers.pk
    LEFT JOIN backchannels ON backchannels.provider_pk = providers.pk
    LEFT JOIN applications AS backchannel ON backchannel.id = backchannels.application_id;

CREATE OR REPLACE VIEW platform_events AS
    SELECT id, at, event, subject, kind, name, fields, caller, request_id, os_user FROM events;
SELECT 'CREATE ROLE platform LOGIN' WHERE to_regrole('platform') IS NULL \gexec
GRANT SELECT ON platform_providers, platform_settings, platform_events TO platform;
COMMIT;
