package rt

import (
	"errors"
	"io/fs"
	"time"
	_ "time/tzdata" // runners can read no zone files
)

// LoadLocation is time.LoadLocation with one difference: where files are out of reach, an unknown zone yields the usual
// error instead of one about permissions.
func LoadLocation(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil, errors.New("unknown time zone " + name)
	}
	return zone, err
}
