package responses

import (
	"github.com/dragoman-mcp/dragoman/dialect"
)

// check refuses functions of the client's that say they are strict and cannot be.
func (t *clientTools) check(of *dialect.Dialect) error { return nil }
