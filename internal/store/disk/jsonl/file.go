package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"

	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// Append writes lines at off, where the file ends, and returns how many bytes they take. What an earlier attempt left
// behind off is cut off. The file is created when it is missing.
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

// write writes text at off, where the file ends, as Append does.
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

// Sync makes durable what was appended.
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

// Cut cuts the file off behind size bytes, durably, when it is longer.
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

// EndLine ends the last line of a file of that size, so that the next one which is appended stands on a line of its
// own, whatever was done to the file. It returns the file's size.
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

// Member returns a string member of a flat object, without decoding the whole where it stands as encoding/json writes
// it. It returns "" when there is none.
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
	doc := map[string]json.RawMessage{}
	value := ""
	if json.Unmarshal(line, &doc) != nil || json.Unmarshal(doc[name], &value) != nil {
		return ""
	}
	return value
}
