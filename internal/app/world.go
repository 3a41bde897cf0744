package app

import (
	"net"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
)

// A World replaces the parts of a daemon that reach out of its process, for tests. A nil field is the real part. With
// all of them set, a daemon without tokens, certificates and replicas starts no process, opens no socket and no file,
// and can live in a bubble of testing/synctest, whose clock it then follows.
type World struct {
	Listener net.Listener // accepts connections in the place of a socket at Listen, which must still be valid
	// Files are the files of the store. DataDir then only names it, and is the directory of the key of secrets, which
	// is read when a connection needs one.
	Files   vfs.FS
	Sandbox sandbox.Sandbox   // runs programs in the place of processes; nothing is compiled
	Model   provider.Provider // writes programs in the place of Provider
}

// files returns the file system of the store, or nil if it cannot be opened.
func (o *Options) files() vfs.FS {
	if o.World.Files != nil {
		return o.World.Files
	}
	files, err := vfs.Dir(o.DataDir)
	if err != nil {
		return nil
	}
	return files
}

// forget drops what the sandbox keeps for a namespace.
func (p *parts) forget(name agent.Namespace) {
	if p.pool != nil {
		p.pool.Forget(name)
	}
}
