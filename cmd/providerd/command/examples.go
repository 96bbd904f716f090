package command

// examples returns the example command lines of each command.
//
//nolint:funlen // A table is as long as its rows are many.
func examples() map[string][]string {
	return map[string][]string{
		"providerd": {"providerd serve --listen 127.0.0.1:8080", "providerd help token create"},
		"providerd serve": {
			"providerd serve",
			"providerd serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem",
			"providerd serve --ops-listen 127.0.0.1:9464 --rate-limit 100/s",
			"PGPASSFILE=pgpass providerd serve --database postgres://providerd@db.example.com/providerd --keyset keyset.json",
		},
		"providerd token create": {
			"providerd token create --name ci --allow providers_oauth2_create --expires-in 30d",
			"providerd token create --name admin --allow all",
		},
		"providerd token list":   {"providerd token list"},
		"providerd token renew":  {"providerd token renew 3", "providerd token renew 3 --overlap 0s --output json"},
		"providerd token revoke": {"providerd token revoke 3", "providerd token revoke --name ci"},
		"providerd provider list": {
			"providerd provider list --kind oauth2 --since 30d",
			"providerd provider list --output json --limit 1000 --after 17",
			"providerd provider list --advice",
		},
		"providerd provider show": {"providerd provider show 17", "providerd provider show 17 --reveal --output json"},
		"providerd provider export": {
			"providerd provider export >providers.yaml",
			"providerd provider export --reveal --to providers.yaml",
		},
		"providerd provider create": {
			"providerd provider create oauth2 --as ci name=Wiki authorization_flow=3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01",
			"providerd provider create workspace_directory --as ci name=Staff delegated_subject=admin@example.com " +
				"default_group_email_domain=example.com credentials:=@key.json",
		},
		"providerd provider update": {
			"providerd provider update 17 redirect_uris=https://app.example.com/callback name=Shop",
			"providerd provider update 17 client_secret=@secret.txt include_claims_in_id_token:=false --yes",
			"providerd provider update 17 signing_key:=null",
		},
		"providerd provider delete":    {"providerd provider delete 17 18", "providerd provider delete 17 18 --yes"},
		"providerd application list":   {"providerd application list"},
		"providerd application link":   {"providerd application link wiki --provider 17 --backchannel 18"},
		"providerd application unlink": {"providerd application unlink wiki --provider 17"},
		"providerd application delete": {"providerd application delete wiki"},
		"providerd application create": {"providerd application create wiki --name Wiki --provider 17"},
		"providerd apply": {
			"providerd apply -f providers.yaml --dry-run",
			"providerd apply -f providers/ --server https://providers.example.com --dry-run --strict",
			"PROVIDERD_TOKEN=$(cat data/initial-token) providerd apply -f providers.yaml --server http://127.0.0.1:8080",
			"providerd apply -f providers.yaml --as ci --dry-run",
			"providerd apply -f providers.yaml --as ci --database sqlite:data/providerd.db --yes --prune=3",
			"providerd apply --schema >providers.schema.json",
		},
		"providerd key create": {
			"providerd key create --keyset keyset.json",
			"providerd key create --keyset next.json --add data/keyset.json",
			"providerd key create --keyset next.json --drop data/keyset.json",
		},
		"providerd key list":   {"providerd key list", "providerd key list --output json"},
		"providerd key rotate": {"providerd key rotate"},
		"providerd key reseal": {"providerd key reseal"},
		"providerd key rewrap": {"providerd key rewrap"},
		"providerd audit list": {
			"providerd audit --since 7d", "providerd audit --pk 1 --output json",
			"providerd audit --follow --output jsonl --cursor-file cursor",
		},
		"providerd audit verify": {"providerd audit verify events.jsonl"},
		"providerd copy": {
			"providerd copy --from sqlite:data/providerd.db --to postgres://providerd@db.example.com/providerd " +
				"--keyset data/keyset.json",
		},
		"providerd backup":  {"providerd backup backup.db", "providerd backup --every 6h --keep 28 backups"},
		"providerd restore": {"providerd restore backup.db", "providerd restore backup.db --replace"},
		"providerd doctor":  {"providerd doctor", "providerd doctor --tls-cert cert.pem --tls-key key.pem --output json"},
		"providerd health":  {"providerd health", "PROVIDERD_LISTEN=0.0.0.0:8443 providerd health --tls-cert cert.pem"},
		"providerd migrate": {"providerd migrate"},
		"providerd completion": {
			"source <(providerd completion bash)",
			"source <(providerd completion zsh)",
			"providerd completion fish | source",
		},
		"providerd version": {"providerd version", "providerd version -o json"},
		"providerd help":    {"providerd help token create"},
	}
}
