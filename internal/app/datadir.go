package app

import (
	"io/fs"
	"os"

	"github.com/rs/zerolog"
)

// tighten takes the data directory from users who have no business in it: it holds arguments, values and programs. What the
// group may do is somebody's decision, such as a backup's, and is only reported. A directory that is everybody's
// (/tmp), or somebody else's, is left as it is.
func tighten(dir string, log zerolog.Logger) {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return // not there yet: it will be made with mode 0700
	}
	mode := info.Mode()
	switch {
	case mode.Perm()&0o077 == 0:
	case mode.Perm()&0o007 == 0:
		log.Warn().Str("directory", dir).Str("permissions",
			mode.String()).Msg("the group of the data directory can read it; chmod 0700 it unless that is meant")
	case mode&fs.ModeSticky != 0:
		log.Warn().Str("directory", dir).Str("permissions",
			mode.String()).Msg("every user of this machine can read the data directory; name a --data-dir of its own")
	default:
		if err := os.Chmod(dir, 0o700); err != nil {
			log.Warn().Err(err).Str("directory", dir).Str("permissions",
				mode.String()).Msg("every user of this machine can read the data directory; its owner should chmod 0700 it")
			return
		}
		log.Warn().Str("directory", dir).Str("permissions",
			mode.String()).Msg("every user of this machine could read the data directory; its mode is 0700 now")
	}
}
