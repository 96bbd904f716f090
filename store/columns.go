package store

import (
	"bytes"
	"slices"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/providerd/store/rows"
)

// column is a value in a column, of a type that database.Insertion lists.
type column struct {
	name  string
	value any
}

// The names of columns. A create fills in created_at when it is inserted.
const pkColumn, clientIDColumn, createdAt = "pk", "client_id", "created_at"

// columns returns the columns of both kinds, except pk, with space for those of a kind.
func (p Provider) columns() []column {
	return append(make([]column, 0, 26),
		column{"uid", p.UID},
		column{"kind", string(p.Kind)},
		column{"name", p.Name},
		column{createdAt, p.CreatedAt.Time},
		column{"created_by", p.CreatedBy},
		column{"request_id", p.RequestID},
		column{"remote_address", p.RemoteAddress},
		column{"idempotency_key", optional(p.IdempotencyKey)},
		column{"secret", p.Sealed},
		column{"generated", int64(p.Generated)},
	)
}

// visit visits each column of the kind: its name, its field, and the default that NULL stands for. The default of a
// list is empty, and the default of an id is null. A required field is neither NULL nor "".
func (s *OAuth2Settings) visit(v *visitor) {
	visit(v, clientIDColumn, &s.ClientID, "")
	v.list("property_mappings", s.PropertyMappings)
	v.id("authentication_flow", s.AuthenticationFlow)
	v.id("authorization_flow", &s.AuthorizationFlow)
	visit(v, "client_type", &s.ClientType, "confidential")
	visit(v, "access_code_validity", &s.AccessCodeValidity, "minutes=1")
	visit(v, "access_token_validity", &s.AccessTokenValidity, "hours=1")
	visit(v, "refresh_token_validity", &s.RefreshTokenValidity, "days=30")
	visit(v, "include_claims_in_id_token", &s.IncludeClaimsInIDToken, true)
	v.id("signing_key", s.SigningKey)
	v.lines("redirect_uris", s.RedirectURIs)
	visit(v, "sub_mode", &s.SubMode, "hashed_user_id")
	visit(v, "issuer_mode", &s.IssuerMode, "per_provider")
	v.list("jwks_sources", s.JWKSSources)
}

func (s *WorkspaceDirectorySettings) visit(v *visitor) {
	v.list("property_mappings", s.PropertyMappings)
	v.list("property_mappings_group", s.PropertyMappingsGroup)
	visit(v, "delegated_subject", &s.DelegatedSubject, "")
	visit(v, "scopes", &s.Scopes, "")
	visit(v, "exclude_users_service_account", &s.ExcludeUsersServiceAccount, false)
	v.id("filter_group", s.FilterGroup)
	visit(v, "user_delete_action", &s.UserDeleteAction, "do_nothing")
	visit(v, "group_delete_action", &s.GroupDeleteAction, "do_nothing")
	visit(v, "default_group_email_domain", &s.DefaultGroupEmailDomain, "")
}

// visitor collects columns or, if sets is set, sets fields to their defaults.
type visitor struct {
	columns []column
	// omits leaves out the columns that have their defaults, and normalizes gives the columns that mean the same the same
	// values: a list is a set, and its order does not count.
	omits, sets, normalizes bool
}

// all returns a visitor with space for the columns of a kind.
func all() visitor { return visitor{columns: make([]column, 0, 16)} }

// visit takes a default of the type of the field, in an interface because such a constant needs no memory.
func visit[T comparable](v *visitor, name string, field *T, byDefault any) {
	switch value := byDefault.(T); {
	case v.sets:
		*field = value
	case *field != value:
		v.columns = append(v.columns, column{name, *field})
	case !v.omits:
		v.columns = append(v.columns, column{name, byDefault})
	}
}

func (v *visitor) list(name string, field rows.List[uuid.UUID]) {
	if v.normalizes {
		compare := func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
		field = slices.Compact(slices.SortedFunc(slices.Values(field), compare))
	}
	if !v.sets && (!v.omits || len(field) > 0) {
		v.columns = append(v.columns, column{name, field.Text()})
	}
}

// lines visits lines that end with LF or CR LF, which is optional on the last one.
func (v *visitor) lines(name, field string) {
	if v.normalizes {
		field = strings.TrimSuffix(strings.ReplaceAll(field, "\r\n", "\n"), "\n")
	}
	visit(v, name, &field, "")
}

func (v *visitor) id(name string, field *uuid.UUID) {
	if !v.sets {
		v.columns = append(v.columns, column{name, optional(field)})
	}
}

// optional returns nil for a nil pointer, and otherwise what it points to.
func optional[T any](value *T) any {
	if value == nil {
		return nil
	}
	return *value
}

func (r OAuth2Provider) settings(v visitor) []column { r.visit(&v); return v.columns }

func (r WorkspaceDirectoryProvider) settings(v visitor) []column { r.visit(&v); return v.columns }

// DefaultOAuth2 returns the defaults of the optional fields that are strings or booleans.
func DefaultOAuth2() (s OAuth2Settings) { s.visit(&visitor{sets: true}); return s }

// DefaultWorkspaceDirectory is DefaultOAuth2 for the other kind.
func DefaultWorkspaceDirectory() (s WorkspaceDirectorySettings) {
	s.visit(&visitor{sets: true})
	return s
}

// withDefaults selects the columns of records, with their defaults instead of NULL. GORM reads NULL as "" or false.
func withDefaults(query *gorm.DB) *gorm.DB {
	row := row{OAuth2Settings: DefaultOAuth2(), WorkspaceDirectorySettings: DefaultWorkspaceDirectory()}
	v, selected := all(), []string{pkColumn}
	row.OAuth2Settings.visit(&v)
	row.WorkspaceDirectorySettings.visit(&v)
	for _, column := range append(row.columns(), v.columns...) {
		name := column.name
		if text, ok := column.value.(string); ok && text != "" {
			name = "coalesce(" + name + ", '" + text + "') AS " + name
		} else if column.value == true {
			name = "coalesce(" + name + ", true) AS " + name
		}
		if !slices.Contains(selected, name) {
			selected = append(selected, name)
		}
	}
	return query.Select(strings.Join(selected, ", "))
}
