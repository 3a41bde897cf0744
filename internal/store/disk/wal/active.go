package wal

import (
	"errors"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// active is the segment that is written to.
type active struct {
	inactive
	file   vfs.File
	room   int64 // reserved bytes
	zeroed int64 // bytes up to which something was written
}

// zeroAhead is how far zeros are written ahead of the frames. To sync a block that was only reserved costs twice as much as to sync one that
// was written before: the file system must note that it holds something now.
const zeroAhead = 256 << 10

var zeros [zeroAhead]byte

type inactive struct {
	Segment
	bytes int64
}

// create creates a segment's file, with space reserved for its entries while the disk has it.
func (l *Log) create(first uint64) (*active, error) {
	name := segmentName(l.dir, first)
	f, err := l.fs.Open(name, true)
	if err != nil {
		return nil, err
	}
	const least = 64 << 10
	room := l.size
	err = f.Truncate(0)
	for err == nil {
		if err = f.Preallocate(room); err == nil || room <= least {
			break
		}
		room /= 4 // a small disk is no reason not to start
		err = nil
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = l.fs.SyncDir(l.dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &active{inactive: inactive{Segment: Segment{Name: name, First: first}}, file: f, room: room}, nil
}

// write writes a frame at the segment's end. A panic counts as a failed write: what reached the disk is unknown.
func (a *active) write(frame []byte) (err error) {
	defer failed(&err)
	if _, err = a.file.WriteAt(frame, a.bytes); err != nil {
		return err
	}
	end := a.bytes + int64(len(frame))
	if end <= a.zeroed {
		return nil
	}
	a.zeroed = max(end, min(end+zeroAhead, a.room))
	_, err = a.file.WriteAt(zeros[:a.zeroed-end], end)
	return err
}

func (a *active) sync() (err error) {
	defer failed(&err)
	return a.file.Sync()
}

// failed makes a panic an error.
func failed(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("writing the journal panicked: %v", v)
	}
}

// Remove removes the files of segments.
func Remove(fs vfs.FS, dir string, segments []Segment) error {
	if len(segments) == 0 {
		return nil
	}
	for _, s := range segments {
		if err := fs.Remove(s.Name); err != nil && !vfs.NotExist(err) {
			return err
		}
	}
	return fs.SyncDir(dir)
}
