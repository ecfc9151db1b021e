package toolsettest_test

import (
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// An Inner keeps the contract itself.
func TestInner(t *testing.T) {
	toolsettest.Run(t, func(_ *testing.T, inner *toolsettest.Inner) dragoman.Toolset { return inner })
}
