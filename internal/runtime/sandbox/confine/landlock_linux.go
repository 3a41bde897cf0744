package confine

import (
	"strings"
	"syscall"

	landsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Rights that a wire.Rule can allow.
const (
	Read    = landsys.AccessFSReadFile
	List    = landsys.AccessFSReadDir
	Write   = landsys.AccessFSWriteFile | landsys.AccessFSTruncate
	Execute = landsys.AccessFSExecute | landsys.AccessFSReadFile // the kernel reads what it executes
)

// Everything returns a ruleset that restricts everything that the kernel's landlock supports, without exceptions. If
// there is no landlock, it returns nil and the state of the layer.
func Everything() (rules *wire.Ruleset, state string) {
	abi, err := landsys.LandlockGetABIVersion()
	if err != nil {
		return nil, off(err)
	}
	if abi < 1 {
		return nil, "off (disabled)"
	}
	fs := map[int]uint64{1: 1<<13 - 1, 2: 1<<14 - 1, 3: 1<<15 - 1, 4: 1<<15 - 1, 5: 1<<16 - 1, 6: 1<<16 - 1,
		7: 1<<16 - 1, 8: 1<<16 - 1, 9: 1<<17 - 1}
	rules = &wire.Ruleset{ABI: abi, FS: fs[min(abi, 9)]}
	if abi >= 4 {
		rules.Net = landsys.AccessNetBindTCP | landsys.AccessNetConnectTCP
	}
	if abi >= 10 {
		rules.Net |= landsys.AccessNetBindUDP | landsys.AccessNetConnectSendUDP
	}
	if abi >= 6 {
		rules.Scoped = landsys.ScopeAbstractUnixSocket | landsys.ScopeSignal
	}
	return rules, ""
}

// Landlock restricts the threads of the scope by the ruleset and returns the state of the layer. The threads must have
// no_new_privs. A process linked with the C library can use only Thread. If c has no ruleset, Landlock verifies the
// given state instead.
func Landlock(c *wire.Confinement, scope Scope) (state string) {
	if c.Landlock == nil {
		return checkGiven(c.Given)
	}
	if err := landlock(c.Landlock, scope); err != nil {
		return off(err)
	}
	return GivenState(c)
}

func landlock(r *wire.Ruleset, scope Scope) error {
	fd, err := landsys.LandlockCreateRuleset(&landsys.RulesetAttr{HandledAccessFS: r.FS, HandledAccessNet: r.Net,
		Scoped: r.Scoped}, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, rule := range r.Rules {
		err := landsys.LandlockAddPathBeneathRule(fd, &landsys.PathBeneathAttr{AllowedAccess: rule.Access & r.FS,
			ParentFd: rule.FD}, 0)
		if err != nil && err != unix.EBADFD { // landlock does not apply to a file in memory
			return err
		}
	}
	if scope == Thread {
		return landsys.LandlockRestrictSelf(fd, 0)
	}
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(fd), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// checkGiven returns the state, or another one if it is "on" although the process can list a directory.
func checkGiven(state string) string {
	if !strings.HasPrefix(state, "on") {
		return state
	}
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
		return "off (it did not come with the start)"
	}
	if err != unix.EACCES {
		return off(err)
	}
	return state
}
