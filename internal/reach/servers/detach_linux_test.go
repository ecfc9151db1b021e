package servers

import (
	"os"
	"os/exec"
	"syscall"
)

const envDetach = "DRAGOMAN_TEST_DETACH" // start a grandchild in a session of its own

// beDetaching makes this fake server one that leaves its process group, as
// servers do that start a browser.
func beDetaching() {
	if os.Getenv(envDetach) == "" {
		return
	}
	_ = os.Unsetenv(envDetach)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "DRAGOMAN_FAKEMCP_GRANDCHILD=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}
