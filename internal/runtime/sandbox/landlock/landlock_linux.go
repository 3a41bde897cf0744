// Package landlock says what the kernel's landlock can forbid.
package landlock

import (
	landsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// Everything handles all that the kernel's landlock knows of, with no exception yet.
func Everything(abi int) landsys.RulesetAttr {
	fs := map[int]uint64{1: 1<<13 - 1, 2: 1<<14 - 1, 3: 1<<15 - 1, 4: 1<<15 - 1, 5: 1<<16 - 1, 6: 1<<16 - 1, 7: 1<<16 - 1, 8: 1<<16 - 1, 9: 1<<17 - 1}
	attr := landsys.RulesetAttr{HandledAccessFS: fs[min(abi, 9)]}
	if abi >= 4 {
		attr.HandledAccessNet = landsys.AccessNetBindTCP | landsys.AccessNetConnectTCP
	}
	if abi >= 10 {
		attr.HandledAccessNet |= landsys.AccessNetBindUDP | landsys.AccessNetConnectSendUDP
	}
	if abi >= 6 {
		attr.Scoped = landsys.ScopeAbstractUnixSocket | landsys.ScopeSignal
	}
	return attr
}

// Supported returns the kernel's version of landlock, or why there is none.
func Supported() (abi int, off string) {
	abi, err := landsys.LandlockGetABIVersion()
	if err != nil {
		return 0, "off (" + err.Error() + ")"
	}
	if abi < 1 {
		return 0, "off (disabled)"
	}
	return abi, ""
}
