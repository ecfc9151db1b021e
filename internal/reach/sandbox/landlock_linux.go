package sandbox

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// Landlock is the kernel's own means for a process to give up rights (Linux,
// Documentation/userspace-api/landlock.rst; constants from linux/landlock.h). Its
// three calls are made here directly: a library would bring fmt, see the package
// comment.
const (
	sysCreateRuleset = 444 // on all architectures that Go and Landlock share but MIPS, where the call does not exist
	sysAddRule       = 445
	sysRestrictSelf  = 446

	createRulesetVersion = 1 << 0
	rulePathBeneath      = 1
	restrictLogNewExec   = 1 << 1 // what is denied after exec is logged by the kernel's audit, too; ABI 7

	setNoNewPrivs = 38       // PR_SET_NO_NEW_PRIVS
	openPath      = 0x200000 // O_PATH

	sysCloseRange     = 436
	closeOnExec       = 1 << 2 // CLOSE_RANGE_CLOEXEC
	firstNotStandard  = 3      // descriptor
	lastOfDescriptors = 1<<32 - 1

	sysOpenat2         = 437
	atWorkingDirectory = -100 // AT_FDCWD
	resolveNoLinks     = 0x04 // RESOLVE_NO_SYMLINKS
)

// Rights in the file system.
const (
	fsExecute = 1 << iota
	fsWriteFile
	fsReadFile
	fsReadDir
	fsRemoveDir
	fsRemoveFile
	fsMakeChar
	fsMakeDir
	fsMakeReg
	fsMakeSock
	fsMakeFifo
	fsMakeBlock
	fsMakeSym
	fsRefer    // ABI 2: to move files between folders
	fsTruncate // ABI 3
	fsIoctlDev // ABI 5

	fsOfFiles = fsExecute | fsWriteFile | fsReadFile | fsTruncate | fsIoctlDev // rights that a file can have, and not only a folder

	toRead  = fsExecute | fsReadFile | fsReadDir
	toWrite = toRead | fsWriteFile | fsRemoveDir | fsRemoveFile | fsMakeDir | fsMakeReg | fsMakeSock | fsMakeFifo | fsMakeSym | fsRefer | fsTruncate | fsIoctlDev
	// Nobody gets fsMakeChar and fsMakeBlock: who may open what they made has the disk.
)

// What is kept from processes outside of the sandbox, since ABI 6.
const (
	scopeAbstractSocket = 1 << iota
	scopeSignal
)

// Landlock returns the version of Landlock (its ABI) that sandboxes use here; 0
// where the kernel has none or does not let us. What a sandbox enforces grows with
// it:
//
//	1  files and folders, but for the next two; nobody outside is traced
//	2  files can be moved between folders that may be changed
//	3  nothing outside of Write is truncated
//	5  devices take no commands (ioctl) outside of Write
//	6  nobody outside is signalled, or reached by abstract Unix sockets
//	7  the kernel's audit log has what was denied
//
// What version 4 has, rules about TCP, is not used: sockets of MPTCP and UDP, and
// Unix sockets that lie in the file system, pass by them. Nor does it know of limits
// that are set for other processes. See [Seccomp].
func Landlock() int {
	abi, _, errno := syscall.RawSyscall(sysCreateRuleset, 0, 0, createRulesetVersion)
	if errno != 0 {
		return 0
	}
	return min(int(abi), 7)
}

// rulesetAttr is struct landlock_ruleset_attr: the rights that are denied unless a
// rule grants them.
type rulesetAttr struct{ fs, net, scoped uint64 }

// handled returns all rights that a version of Landlock can deny, and how many bytes
// of them it knows.
func handled(abi int) (attr rulesetAttr, size uintptr) {
	attr.fs, size = fsIoctlDev<<1-1, 8
	switch {
	case abi < 2:
		attr.fs = fsRefer - 1
	case abi < 3:
		attr.fs = fsTruncate - 1
	case abi < 5:
		attr.fs = fsIoctlDev - 1
	}
	if abi >= 6 {
		attr.scoped, size = scopeAbstractSocket|scopeSignal, 24
	}
	return attr, size
}

// restrict puts the calling thread, and every process that it starts, into the
// sandbox. There is no way back.
func (s *Sandbox) restrict() error {
	abi := Landlock()
	if abi == 0 {
		return os.NewSyscallError("landlock_create_ruleset", syscall.ENOSYS)
	}
	attr, size := handled(abi)
	ruleset, _, errno := syscall.RawSyscall(sysCreateRuleset, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return os.NewSyscallError("landlock_create_ruleset", errno)
	}
	defer syscall.Close(int(ruleset))
	for _, path := range system {
		_ = grant(ruleset, path, toRead&attr.fs, 0)
	}
	for _, path := range devices {
		_ = grant(ruleset, path, toWrite&attr.fs, 0)
	}
	for _, path := range s.Read {
		if err := grant(ruleset, path, toRead&attr.fs, resolveNoLinks); err != nil {
			return err
		}
	}
	for _, path := range s.Write {
		if err := grant(ruleset, path, toWrite&attr.fs, resolveNoLinks); err != nil {
			return err
		}
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	// Landlock does not judge what is open already, such as the files that whoever
	// started the gateway left open for it.
	if _, _, errno := syscall.RawSyscall(sysCloseRange, firstNotStandard, lastOfDescriptors, closeOnExec); errno != 0 {
		return os.NewSyscallError("close_range", errno)
	}
	// Without it programs that run as somebody else (setuid) could leave the sandbox,
	// and Landlock is not to be had.
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, setNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return os.NewSyscallError("prctl", errno)
	}
	var flags uintptr
	if abi >= 7 {
		flags = restrictLogNewExec
	}
	if _, _, errno := syscall.RawSyscall(sysRestrictSelf, ruleset, flags, 0); errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	if !Seccomp() {
		return nil
	}
	if err := denyLimits(); err != nil || s.Network {
		return err
	}
	return denySockets()
}

// grant lets a ruleset have rights on a file, or on a folder and all that is below.
// resolve says how its path may be followed: what is granted by the configuration has
// no links, which a server could have put there.
func grant(ruleset uintptr, path string, rights uint64, resolve uint64) error {
	fd, err := open(path, resolve)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer syscall.Close(fd)
	var stat syscall.Stat_t
	if err := syscall.Fstat(fd, &stat); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		rights &= fsOfFiles
	}
	// struct landlock_path_beneath_attr
	rule := struct {
		rights uint64
		fd     int32
	}{rights, int32(fd)}
	if _, _, errno := syscall.RawSyscall6(sysAddRule, ruleset, rulePathBeneath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return &os.PathError{Op: "landlock_add_rule", Path: path, Err: errno}
	}
	return nil
}

// startConfined starts a process in the sandbox. Only the thread that starts it goes
// there, too, and ends thereafter: the guard stays outside, and can end them all.
func (s *Sandbox) startConfined(start func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with this function
		err := s.restrict()
		if err == nil {
			err = start()
		}
		done <- err
	}()
	return <-done
}

// open opens a path for nothing but to name it (openat2(2)).
func open(path string, resolve uint64) (fd int, err error) {
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	how := struct{ flags, mode, resolve uint64 }{openPath | syscall.O_CLOEXEC, 0, resolve}
	at := atWorkingDirectory
	opened, _, errno := syscall.RawSyscall6(sysOpenat2, uintptr(at), uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(opened), nil
}

// withoutLinks returns the path of what a path leads to.
func withoutLinks(path string) (string, error) {
	fd, err := open(path, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer syscall.Close(fd)
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
}
