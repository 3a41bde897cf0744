package rt

import (
	"errors"
	"io/fs"
	"time"
	_ "time/tzdata" // programs find no file
)

// LoadLocation is time.LoadLocation, but for the error about a zone that does not exist where files are out of reach.
func LoadLocation(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil, errors.New("unknown time zone " + name)
	}
	return zone, err
}
