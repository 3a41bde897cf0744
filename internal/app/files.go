package app

import (
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
	"github.com/recurgentd/recurgentd/internal/store"
)

// checkFiles checks the bounds of files and of storage.
func (o *Options) checkFiles() error {
	if o.FileMax < 1 || o.FileMax > 1<<40 {
		return refuse("file-max", "must be 1 B to 1 TiB, got %s", o.FileMax)
	}
	if o.FilesMax < o.FileMax {
		return refuse("files-max", "must be at least --file-max, %s, got %s", o.FileMax, o.FilesMax)
	}
	if o.StorageMax != 0 && (o.StorageMax < 1<<20 || o.StorageMax > 1<<50) {
		return refuse("storage-max", "must be 1 MiB to 1 PiB, got %s", o.StorageMax)
	}
	return nil
}

// unknownDisk is the storage limit if the size of the disk is unknown, as with a database.
const unknownDisk = 100 << 30

// mostStored returns how much all namespaces together may store, by kind of data.
func (o *Options) mostStored() store.Bytes {
	all := int64(o.StorageMax)
	if all == 0 {
		all = unknownDisk
		if files := o.files(); files != nil && !o.Database() {
			if _, total, err := files.Free(); err == nil {
				all = int64(min(total, 1<<50))
			}
		}
	}
	return storage.Split(all, int64(o.FilesMax))
}
