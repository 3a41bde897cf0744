package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path"

	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// streams reads the bytes of all files and compares them with files.json. It does nothing while the journal has entries
// to replay, because files.json may lag behind it.
func (v *namespaceVerifier) streams() error {
	var doc filesDoc
	ok, err := v.doc(v.files, filesFile, &doc)
	if err != nil || !ok || v.replayed {
		return err
	}
	for _, f := range doc.Files {
		name := path.Join(filesDir, f.ID)
		info, err := v.files.Stat(name)
		switch {
		case vfs.WrongKind(err): // walk reports it
		case vfs.NotExist(err), info.Dir:
			v.problem(name, "is missing")
		case err != nil:
			return err
		case info.Size != f.Bytes:
			v.problem(name, "has %d bytes, not %d", info.Size, f.Bytes)
		default:
			sum, err := v.sum(name, f.Bytes)
			if err != nil {
				return err
			}
			if f.SHA256 != "" && sum != f.SHA256 {
				v.problem(name, "has other bytes than its digest says")
			}
		}
		if err := v.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// sum returns the SHA-256 of the first size bytes of a file, as hexadecimal digits.
func (v *namespaceVerifier) sum(name string, size int64) (string, error) {
	f, err := v.files.Open(name, false)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, size)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
