package runtime

import (
	"context"
	"errors"
	"io"

	"github.com/recurgentd/recurgentd/internal/store"
)

// ErrNoExport means that the store cannot write an archive of itself.
var ErrNoExport = errors.New("the store cannot be exported")

// Export writes an archive of everything that is stored, while calls go on. An error after the first byte leaves a
// broken archive, which its checksums tell.
func (r *Runtime) Export(ctx context.Context, w io.Writer) error {
	s, ok := r.o.Store.(store.Exporter)
	if !ok {
		return ErrNoExport
	}
	return s.Export(ctx, w)
}
