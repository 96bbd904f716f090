package store

import "context"

// Pragmas reads a setting from one connection of each pool, the writer's first.
func (s *Store) Pragmas(ctx context.Context, name string) (writer, reader string, err error) {
	if err = s.writer.WithContext(ctx).Raw("PRAGMA " + name).Scan(&writer).Error; err != nil {
		return
	}
	err = s.reader.WithContext(ctx).Raw("PRAGMA " + name).Scan(&reader).Error
	return
}
