//go:build !linux

package servers

func beDetaching() {}
