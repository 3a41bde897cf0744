package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"

	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// Append writes lines at off, the end of the complete lines, and returns their size in bytes. It first truncates what
// an earlier attempt left after off. The file is created if it is missing. Sync makes the lines durable.
func Append(fs vfs.FS, name string, off int64, lines [][]byte) (int64, error) {
	total := len(lines)
	for _, line := range lines {
		total += len(line)
	}
	text := make([]byte, 0, total)
	for _, line := range lines {
		text = append(append(text, line...), '\n')
	}
	return write(fs, name, off, text)
}

// write writes text at off, as Append does.
func write(fs vfs.FS, name string, off int64, text []byte) (int64, error) {
	f, err := fs.Open(name, true)
	if err != nil {
		return 0, err
	}
	size, err := f.Size()
	if err == nil && size > off {
		err = f.Truncate(off)
	}
	if err == nil {
		_, err = f.WriteAt(text, off)
	}
	return int64(len(text)), errors.Join(err, f.Close())
}

// Sync makes the content of the file and its name durable.
func Sync(fs vfs.FS, name string) error {
	f, err := fs.Open(name, false)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return fs.SyncDir(path.Dir(name))
}

// Cut durably truncates the file to size bytes if it is longer. A missing file is ignored.
func Cut(fs vfs.FS, name string, size int64) error {
	info, err := fs.Stat(name)
	if vfs.NotExist(err) || err == nil && info.Size <= size {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := fs.Open(name, false)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Sync(), f.Close())
}

// EndLine adds a newline to a file of that size if its last line lacks one, so the next line does not continue a torn
// one. It returns the file's new size.
func EndLine(fs vfs.FS, name string, size int64) (int64, error) {
	if size == 0 {
		return 0, nil
	}
	f, err := fs.Open(name, false)
	if err != nil {
		return 0, err
	}
	last := make([]byte, 1)
	if _, err = f.ReadAt(last, size-1); err == nil && last[0] != '\n' {
		_, err = f.WriteAt([]byte("\n"), size)
		size++
	}
	return size, errors.Join(err, f.Close())
}

// Member returns a string member of a flat object that was encoded by encoding/json, usually without decoding it. It
// returns "" if there is none.
func Member(line []byte, name string) string {
	i := bytes.Index(line, []byte(`"`+name+`":"`))
	if i < 0 {
		return ""
	}
	rest := line[i+len(name)+4:]
	end := bytes.IndexAny(rest, `"\`)
	if end < 0 {
		return ""
	}
	if rest[end] == '"' {
		return string(rest[:end])
	}
	// The value contains an escape.
	doc := map[string]json.RawMessage{}
	value := ""
	if json.Unmarshal(line, &doc) != nil || json.Unmarshal(doc[name], &value) != nil {
		return ""
	}
	return value
}
