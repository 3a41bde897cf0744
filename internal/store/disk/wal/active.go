package wal

import (
	"errors"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// active is the segment that Write appends to.
type active struct {
	inactive
	file   vfs.File
	room   int64 // bytes reserved for the file
	zeroed int64 // end of the bytes that were ever written, zeros included
}

// zeroAhead is how many bytes of zeros are written ahead of the frames. Syncing a block that was only reserved costs
// twice as much as syncing one that was written before, because the file system must also record that the block is in
// use.
const zeroAhead = 256 << 10

var zeros [zeroAhead]byte

// inactive is a segment with the size of its frames.
type inactive struct {
	Segment
	bytes int64
}

// create creates the file of a segment and reserves space for its entries. If the disk lacks the space, it reserves
// less.
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
		// A small disk must not prevent a start.
		room /= 4
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

// write appends a frame to the segment. It returns a panic as an error: what reached the disk is unknown in both cases.
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

// sync syncs the file. It returns a panic as an error.
func (a *active) sync() (err error) {
	defer failed(&err)
	return a.file.Sync()
}

// failed turns a panic into an error.
func failed(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("writing the journal panicked: %v", v)
	}
}

// Remove durably removes the files of segments. Files that are already missing are ignored.
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
