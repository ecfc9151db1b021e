package config

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
)

// CheckSandboxes reports, as [Errors], the sandboxes whose servers could reach what is
// ours: no server in one changes a file that says what is started, who may do what, or
// what is trusted, and none reads where keys, tokens, approvals and the audit log are.
// It comes after everything that chooses servers and files.
func (f *File) CheckSandboxes() error {
	var secret, fixed []string // not to be read, and not to be changed
	if path, err := store.DefaultPath(); err == nil {
		secret = append(secret, filepath.Dir(path))
	}
	if dir, err := os.UserConfigDir(); err == nil {
		fixed = append(fixed, filepath.Join(dir, "dragoman"))
	}
	if program, err := os.Executable(); err == nil {
		fixed = append(fixed, program)
	}
	if f.Store.Path != store.Memory && f.Store.Path != "" {
		secret = append(secret, f.Store.Path, vault.KeyPath(f.Store.Path))
	}
	secret = append(secret, f.Store.KeyFile, f.KeysFile(), f.TLS.Key)
	for _, server := range f.MCPServers {
		secret, fixed = append(secret, server.TLS.Key), append(fixed, server.TLS.Cert, server.TLS.CA)
	}
	for _, model := range f.Models {
		secret, fixed = append(secret, model.TLS.Key), append(fixed, model.TLS.Cert, model.TLS.CA)
	}
	fixed = append(append(fixed, secret...), f.Path, f.serversFrom, f.PolicyFile, f.Pins.Lock, f.TLS.Cert, f.TLS.ClientCA)
	fixed = append(fixed, f.variables...) // such as the LD_PRELOAD of a server without a sandbox

	var errs Errors
	for _, label := range slices.Sorted(maps.Keys(f.MCPServers)) {
		server := f.MCPServers[label]
		if server.Disabled {
			continue
		}
		at := join(join(serversKey, label), "sandbox")
		errs = append(errs, f.reach(join(at, "read"), server.Sandbox.Read, secret)...)
		errs = append(errs, f.reach(join(at, "write"), server.Sandbox.Write, fixed)...)
	}
	if errs == nil {
		return nil
	}
	return errs
}

// reach reports the paths under a key that hold, or are in, one of ours.
func (f *File) reach(key string, paths, ours []string) (errs Errors) {
	for _, path := range paths {
		for _, own := range ours {
			if own == "" || !holds(real(path), real(own)) && !holds(real(own), real(path)) {
				continue
			}
			errs = append(errs, &Error{
				File: cmp.Or(f.serversFrom, f.Path), Path: key,
				Message: fmt.Sprintf("%s: with %s a server would reach %s, which is the gateway's own", key, path, own),
				Hint:    "Name the folders that the server needs, one by one.",
			})
			break
		}
	}
	return errs
}

// real returns an absolute path without symbolic links, as far as it exists.
func real(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(real(dir), filepath.Base(path))
	}
	return path
}

// holds reports whether inner is outer, or below it.
func holds(outer, inner string) bool {
	relative, err := filepath.Rel(outer, inner)
	return err == nil && filepath.IsLocal(relative)
}
