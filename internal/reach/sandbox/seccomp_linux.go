package sandbox

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// Seccomp lets a process give up system calls (seccomp(2), linux/seccomp.h,
// linux/filter.h, linux/audit.h).
var (
	sysSeccomp    = map[string]uintptr{"amd64": 317, "arm64": 277}[runtime.GOARCH]
	auditArch     = map[string]uint32{"amd64": 0xc000003e, "arm64": 0xc00000b7}[runtime.GOARCH]
	sysSocket     = map[string]uint32{"amd64": 41, "arm64": 198}[runtime.GOARCH] // package syscall has neither on 386
	sysSocketpair = map[string]uint32{"amd64": 53, "arm64": 199}[runtime.GOARCH]
	sysPrlimit    = map[string]uint32{"amd64": 302, "arm64": 261}[runtime.GOARCH]
	prlimit32     = map[string]uint32{"amd64": 340, "arm64": 369}[runtime.GOARCH] // of the architecture with 32 bits that runs here, too
)

const (
	seccompSetModeFilter  = 1
	seccompGetActionAvail = 2

	returnAllow = 0x7fff0000
	returnErrno = 0x00050000 // with the number of the error

	returnDenied = returnErrno | uint32(syscall.EACCES)

	sysIOURingSetup = 425
	x32             = 0x40000000 // from here on amd64 has its calls once more

	loadWord    = 0x20 // BPF_LD | BPF_W | BPF_ABS
	jumpEqual   = 0x15 // BPF_JMP | BPF_JEQ | BPF_K
	jumpAtLeast = 0x35 // BPF_JMP | BPF_JGE | BPF_K
	and         = 0x54 // BPF_ALU | BPF_AND | BPF_K
	giveBack    = 0x06 // BPF_RET | BPF_K

	offsetCall   = 0 // in struct seccomp_data
	offsetArch   = 4
	offsetFirst  = 16 // argument; both architectures have its low half here
	offsetSecond = 24

	socketKind = 0x0f // SOCK_TYPE_MASK: what is not a flag in the type of a socket
)

// Seccomp reports whether a sandbox can be without sockets, and without limits for
// processes outside, here: whether the kernel filters system calls, and we know its
// numbers for them, which is so on amd64 and arm64.
func Seccomp() bool {
	if auditArch == 0 {
		return false
	}
	action := uint32(returnErrno)
	_, _, errno := syscall.RawSyscall(sysSeccomp, seccompGetActionAvail, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

// denySockets takes from the calling thread, and every process that it starts, the
// ways to make a socket. Pairs of Unix sockets, which programs talk to their children by,
// are still to be had, where they stay a pair: one for datagrams sends to whichever Unix
// socket in the file system it names. System calls of another architecture, whose numbers
// mean something else, are denied altogether.
func denySockets() error {
	return install([]syscall.SockFilter{
		{Code: loadWord, K: offsetArch},
		{Code: jumpEqual, K: auditArch, Jf: 12},
		{Code: loadWord, K: offsetCall},
		{Code: jumpAtLeast, K: x32, Jt: 10},
		{Code: jumpEqual, K: sysSocket, Jt: 9},
		{Code: jumpEqual, K: sysIOURingSetup, Jt: 8}, // its rings make sockets unseen
		{Code: jumpEqual, K: sysSocketpair, Jf: 6},
		{Code: loadWord, K: offsetFirst},
		{Code: jumpEqual, K: syscall.AF_UNIX, Jf: 5},
		{Code: loadWord, K: offsetSecond},
		{Code: and, K: socketKind},
		{Code: jumpEqual, K: syscall.SOCK_STREAM, Jt: 1},
		{Code: jumpEqual, K: syscall.SOCK_SEQPACKET, Jf: 1},
		{Code: giveBack, K: returnAllow},
		{Code: giveBack, K: returnDenied},
	})
}

// denyLimits takes from the calling thread, and every process that it starts, the way
// to set limits for other processes: one of no processor time ends whoever gets it, and
// Landlock does not judge it as the signal that it comes to.
func denyLimits() error {
	return install([]syscall.SockFilter{
		{Code: loadWord, K: offsetArch},
		{Code: jumpEqual, K: auditArch, Jf: 3},
		{Code: loadWord, K: offsetCall},
		{Code: and, K: ^uint32(x32)},
		{Code: jumpEqual, K: sysPrlimit, Jt: 2, Jf: 4},
		{Code: loadWord, K: offsetCall},
		{Code: jumpEqual, K: prlimit32, Jf: 2},
		{Code: loadWord, K: offsetFirst}, // the process; 0 is the caller
		{Code: jumpEqual, K: 0, Jf: 1},
		{Code: giveBack, K: returnAllow},
		{Code: giveBack, K: returnDenied},
	})
}

// install makes the calling thread go by a filter, beside those that it has.
func install(filter []syscall.SockFilter) error {
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := syscall.RawSyscall(sysSeccomp, seccompSetModeFilter, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	runtime.KeepAlive(filter)
	return nil
}
