package wire

// LaunchArg is the argument of a runner's command line by which it launches an executable, where the daemon carries no launcher.
const LaunchArg = "launch"

// ProbeArg is the argument by which an executable of the runners' program makes the canary's probes in an init; the daemon's number and its own bounds of memory follow.
const ProbeArg = "probe"

// What a launcher finds open: the file that it executes, and, where that is a tool, what it lays rules on.
const (
	ExecutableFD = 4
	ToolDirFD    = 5 // the directory to work in
	ToolOutFD    = 6 // the file to write
	ToolNullFD   = 7 // the null device
	ToolReadFD   = 8 // the first of the directories that may be read
)

// EmptyPath is the address at which a launcher has the empty path with which it executes the descriptor. The filters of what is launched know the address:
// there the executable has nothing, and can map nothing, so that it executes nothing by this call. It lies above all that is linked and below all that the Go runtime maps.
// EmptyPathSize is the size of the largest page.
const (
	EmptyPath     = 0x7fff0000
	EmptyPathSize = 64 << 10
)

// A Launch is what a launcher does: it confines itself, and becomes the executable.
type Launch struct {
	Confine Confinement
	Require []string // layers without which nothing is executed
	Path    string   // of the executable, where the system executes no descriptor; "" elsewhere
	Args    []string // of the command line
	Env     []string
	Dir     int // descriptor of the working directory; 0 for the one that it has
	Keep    int // descriptors from this one on are closed in the executable
	Files   int // that the launcher has, from ExecutableFD on
}

// Put builds the frame.
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

// ParseLaunch returns the launch, which shares memory with the payload.
func ParseLaunch(payload []byte) (*Launch, error) {
	p := Parse(payload)
	l := &Launch{Confine: *takeConfinement(&p), Require: p.TakeStrings(), Path: p.TakeString(), Args: p.TakeStrings(),
		Env: p.TakeStrings()}
	l.Dir, l.Keep, l.Files = int(p.TakeUint()), int(p.TakeUint()), int(p.TakeUint())
	if !p.End() {
		return nil, ErrFrame
	}
	return l, nil
}
