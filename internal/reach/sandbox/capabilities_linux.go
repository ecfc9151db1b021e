package sandbox

import (
	"os"
	"syscall"
)

// keptCapabilities are what root may keep in a sandbox: to use files whatever their
// mode, which Landlock still judges, to become another user, and to listen on low
// ports (capabilities(7), linux/capability.h). CAP_CHOWN and CAP_FOWNER are not among
// them: Landlock does not judge owners and modes.
const keptCapabilities = 1<<1 | // CAP_DAC_OVERRIDE
	1<<6 | // CAP_SETGID
	1<<7 | // CAP_SETUID
	1<<10 // CAP_NET_BIND_SERVICE

const (
	readBounding = 23 // PR_CAPBSET_READ
	dropBounding = 24 // PR_CAPBSET_DROP
	ambient      = 47 // PR_CAP_AMBIENT
	clearAll     = 4  // PR_CAP_AMBIENT_CLEAR_ALL
)

// dropCapabilities takes from the calling thread, for the programs that it starts,
// the powers of root by which they could reach around Landlock: to load code into the
// kernel, to look into any process, to change the system. Others than root have none
// that a program keeps.
func dropCapabilities() error {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, ambient, clearAll, 0, 0, 0, 0)
	if os.Geteuid() != 0 {
		return nil
	}
	for number := range uintptr(64) {
		if keptCapabilities>>number&1 == 1 {
			continue
		}
		held, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, readBounding, number, 0)
		if errno != 0 {
			return nil // there are no more of them
		}
		if held == 0 {
			continue
		}
		if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, dropBounding, number, 0); errno != 0 {
			return os.NewSyscallError("prctl: dropping capabilities", errno)
		}
	}
	return nil
}
