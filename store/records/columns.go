package records

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/providerd/store/rows"
)

// Column is a value in a column, of a type that database.Insertion lists.
type Column struct {
	Name  string
	Value any
}

// The names of columns. A create fills in created_at when it is inserted.
const (
	PKColumn        = "pk"
	ClientIDColumn  = "client_id"
	CreatedAtColumn = "created_at"
)

// Columns returns the columns of both kinds, except pk, with space for those of a kind.
func (p Provider) Columns() []Column {
	return append(make([]Column, 0, 10+maxSettings),
		Column{"uid", p.UID},
		Column{"kind", string(p.Kind)},
		Column{"name", p.Name},
		Column{CreatedAtColumn, p.CreatedAt.Time},
		Column{"created_by", p.CreatedBy},
		Column{"request_id", p.RequestID},
		Column{"remote_address", p.RemoteAddress},
		Column{"idempotency_key", Optional(p.IdempotencyKey)},
		Column{"secret", p.Sealed},
		Column{"generated", int64(p.Generated)},
	)
}

// visit visits each column of the kind: its name, its field, and the default that NULL stands for. The default of a
// list is empty, and the default of an id is null. A required field is neither NULL nor "".
func (s *OAuth2Settings) visit(v *visitor) {
	visit(v, ClientIDColumn, &s.ClientID, "")
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
	columns []Column
	// omits leaves out the columns that have their defaults, and normalizes gives the columns that mean the same the same
	// values: a list is a set, and its order does not count.
	omits, sets, normalizes bool
}

// Settings appends the columns of the kind of a record to others.
func Settings(record Record, others []Column) []Column {
	return record.settings(visitor{columns: slices.Grow(others, maxSettings)})
}

// maxSettings is at least the number of columns of a kind.
const maxSettings = 16

// all returns a visitor with space for the columns of a kind.
func all() visitor { return visitor{columns: make([]Column, 0, maxSettings)} }

// visit takes a default of the type of the field, in an interface because such a constant needs no memory.
func visit[T comparable](v *visitor, name string, field *T, byDefault any) {
	switch value := byDefault.(T); {
	case v.sets:
		*field = value
	case *field != value:
		v.columns = append(v.columns, Column{name, *field})
	case !v.omits:
		v.columns = append(v.columns, Column{name, byDefault})
	}
}

func (v *visitor) list(name string, field rows.List[uuid.UUID]) {
	if v.normalizes {
		compare := func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
		field = slices.Compact(slices.SortedFunc(slices.Values(field), compare))
	}
	if !v.sets && (!v.omits || len(field) > 0) {
		v.columns = append(v.columns, Column{name, field.Text()})
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
		v.columns = append(v.columns, Column{name, Optional(field)})
	}
}

// Optional returns nil for a nil pointer, and otherwise what it points to.
func Optional[T any](value *T) any {
	if value == nil {
		return nil
	}
	return *value
}

func (r OAuth2Provider) settings(v visitor) []Column { r.visit(&v); return v.columns }

func (r WorkspaceDirectoryProvider) settings(v visitor) []Column { r.visit(&v); return v.columns }

// DefaultOAuth2 returns the defaults of the optional fields that are strings or booleans.
func DefaultOAuth2() (s OAuth2Settings) { s.visit(&visitor{sets: true}); return s }

// DefaultWorkspaceDirectory is DefaultOAuth2 for the other kind.
func DefaultWorkspaceDirectory() (s WorkspaceDirectorySettings) {
	s.visit(&visitor{sets: true})
	return s
}

// WithDefaults selects the columns of records, with their defaults instead of NULL. GORM reads NULL as "" or false.
func WithDefaults(query *gorm.DB) *gorm.DB {
	row := row{OAuth2Settings: DefaultOAuth2(), WorkspaceDirectorySettings: DefaultWorkspaceDirectory()}
	v, selected := all(), []string{PKColumn}
	row.OAuth2Settings.visit(&v)
	row.WorkspaceDirectorySettings.visit(&v)
	for _, column := range append(row.Columns(), v.columns...) {
		name := column.Name
		if text, ok := column.Value.(string); ok && text != "" {
			name = "coalesce(" + name + ", '" + text + "') AS " + name
		} else if column.Value == true {
			name = "coalesce(" + name + ", true) AS " + name
		}
		if !slices.Contains(selected, name) {
			selected = append(selected, name)
		}
	}
	return query.Select(strings.Join(selected, ", "))
}

// CheckTexts returns an error for a text that JSON cannot hold, or that only one of the databases stores.
func CheckTexts(columns []Column) error {
	for _, column := range columns {
		if text, ok := column.Value.(string); ok && (!utf8.ValidString(text) || strings.ContainsRune(text, 0)) {
			return errors.New(column.Name + " is not UTF-8, or contains U+0000")
		}
	}
	return nil
}
