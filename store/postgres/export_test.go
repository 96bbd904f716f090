package postgres

// SchemaLevel is that of the last migration.
const SchemaLevel = schemaLevel
