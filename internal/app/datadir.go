package app

import (
	"io/fs"
	"os"

	"github.com/rs/zerolog"
)

// tighten removes the access of other users to the data directory, which contains arguments, values and programs.
// Access of the group may be intended, for a backup, so it is only reported. A sticky directory such as /tmp, or that
// of another user, stays as it is.
func tighten(dir string, log zerolog.Logger) {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return // it does not exist yet, and will be made with mode 0700
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
