//go:build !unix

package mcp

import (
	"os"
	"os/exec"
	"time"
)

// Without process groups only the process itself is ended.

func ownGroup(*exec.Cmd)                        {}
func terminate(p *os.Process)                   { _ = p.Kill() }
func kill(p *os.Process)                        { _ = p.Kill() }
func groupGone(*os.Process, time.Duration) bool { return true }
