//go:build !unix

package pgtest

import "syscall"

func otherUser(string) (*syscall.SysProcAttr, error) { return nil, nil }
