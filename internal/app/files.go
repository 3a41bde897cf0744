package app

func (o *Options) checkFiles() error {
	if o.FileMax < 1 || o.FileMax > 1<<40 {
		return refuse("file-max", "must be 1 B to 1 TiB, got %s", o.FileMax)
	}
	if o.FilesMax < o.FileMax {
		return refuse("files-max", "must be at least --file-max, %s, got %s", o.FileMax, o.FilesMax)
	}
	return nil
}
