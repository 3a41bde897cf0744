package wire

// LaunchArg is the argument that turns a runner into a launcher, if the daemon has no embedded launcher.
const LaunchArg = "launch"

// ProbeArg is the argument by which the launched runners' program makes the canary's probes in an init function. The
// daemon's process id and the program's two memory limits follow.
const ProbeArg = "probe"

// Descriptors of a launcher. Those above ExecutableFD are open only if the executable is a tool.
const (
	ExecutableFD = 4 // the file to execute
	ToolDirFD    = 5 // the working directory
	ToolOutFD    = 6 // the file to write
	ToolNullFD   = 7 // the null device
	ToolReadFD   = 8 // the first of the readable directories
)

// EmptyPath is the address of the empty path with which a launcher executes a descriptor (execveat(2)). The seccomp
// filters of the executable allow the call with this address only. The executable has nothing mapped there and cannot
// map anything, so it cannot execute anything by this call. The address lies above everything linked and below
// everything that the Go runtime maps. EmptyPathSize is the size of the largest page.
const (
	EmptyPath     = 0x7fff0000
	EmptyPathSize = 64 << 10
)

// A Launch directs a launcher to confine itself and then to execute a file.
type Launch struct {
	Confine Confinement
	Require []string // layers without which the launcher executes nothing
	Path    string   // path of the executable, on systems that cannot execute a descriptor; otherwise ""
	Args    []string // command line, with the name
	Env     []string
	Dir     int // descriptor of the working directory; 0 leaves it unchanged
	Keep    int // descriptors from Keep on are closed in the executable
	Files   int // number of files that the launcher has from ExecutableFD on
}

// Put builds the frame in f.
func (l *Launch) Put(f *Builder) {
	f.Begin(KindLaunch)
	l.Confine.put(f)
	f.PutStrings(l.Require)
	f.PutString(l.Path)
	f.PutStrings(l.Args)
	f.PutStrings(l.Env)
	f.PutUint(uint64(l.Dir))
	f.PutUint(uint64(l.Keep))
	f.PutUint(uint64(l.Files))
}

// ParseLaunch parses a launch. The result shares memory with the payload.
func ParseLaunch(payload []byte) (*Launch, error) {
	p := parse(payload)
	l := &Launch{Confine: *takeConfinement(&p), Require: p.TakeStrings(), Path: p.TakeString(), Args: p.TakeStrings(),
		Env: p.TakeStrings()}
	l.Dir, l.Keep, l.Files = int(p.TakeUint()), int(p.TakeUint()), int(p.TakeUint())
	if !p.End() {
		return nil, ErrFrame
	}
	return l, nil
}
