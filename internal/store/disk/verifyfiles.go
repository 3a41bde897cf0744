package disk

import (
	"path"

	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// streams checks that each file has its bytes. While the journal has entries to replay, files.json may be behind it.
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
		case vfs.NotExist(err):
			v.problem(name, "is missing")
		case err != nil:
			return err
		case info.Size != f.Bytes:
			v.problem(name, "has %d bytes, not %d", info.Size, f.Bytes)
		}
	}
	return nil
}
