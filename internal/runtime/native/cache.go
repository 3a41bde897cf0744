package native

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// prune removes the least recently used executables while all together take more than MaxBytes, and never the one to keep.
func (b *Builder) prune(keep string) error {
	entries, err := os.ReadDir(b.dir("exe"))
	if err != nil {
		return err
	}
	type file struct {
		path string
		size int64
		used time.Time
	}
	var files []file
	total := int64(0)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // gone meanwhile
		}
		files = append(files, file{filepath.Join(b.dir("exe"), e.Name()), info.Size(), info.ModTime()})
		total += info.Size()
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.used.UnixNano(), b.used.UnixNano()) })
	for _, f := range files {
		if total <= b.opts.MaxBytes {
			break
		}
		if f.path == keep {
			continue
		}
		if err := os.Remove(f.path); err != nil {
			return err
		}
		total -= f.size
	}
	return nil
}
