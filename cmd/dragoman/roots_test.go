package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestRoots starts this program where the system has no certificates.
func TestRoots(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere certificates cannot be taken away")
	}
	if os.Getenv("DRAGOMAN_TEST_ROOTS") != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("empty: %v", pool.Equal(x509.NewCertPool()))
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(t.TempDir(), "none")
	cmd := exec.Command(self, "-test.run=^TestRoots$", "-test.v")
	cmd.Env = append(os.Environ(), "DRAGOMAN_TEST_ROOTS=1", "SSL_CERT_FILE="+nowhere, "SSL_CERT_DIR="+nowhere)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "empty: false") {
		t.Errorf("without the system's certificates: %v\n%s", err, out)
	}
}
