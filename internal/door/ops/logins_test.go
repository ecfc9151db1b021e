package ops

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
)

// An answer of another authorization server is no fault of the gateway's, whose log has
// nothing to say about it.
func TestLoginErrorOfOtherIssuer(t *testing.T) {
	e := loginError(fmt.Errorf("logging in: %w", credential.ErrOtherIssuer))
	if e.Status != http.StatusBadRequest || e.Code != "login_refused" || e.Param != "iss" {
		t.Errorf("it is %d %s of %s: %s", e.Status, e.Code, e.Param, e.Message)
	}
	if e := loginError(errors.New("dial tcp: refused")); e.Status != http.StatusBadGateway {
		t.Errorf("anything else is %d", e.Status)
	}
}
