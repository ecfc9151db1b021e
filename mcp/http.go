package mcp

import (
	"context"
	"errors"
)

type HTTP struct{}
type SSE HTTP
type httpLink struct{}

func (*HTTP) open(context.Context, *Client) (link, error)                     { return nil, errors.New("not yet") }
func (*SSE) open(context.Context, *Client) (link, error)                      { return nil, errors.New("not yet") }
func (*httpLink) roundTrip(ctx context.Context, x *exchange) (message, error) { return message{}, nil }
func (*httpLink) send(ctx context.Context, body []byte) error                 { return nil }
func (*httpLink) established(*session)                                        {}
func (*httpLink) down() <-chan struct{}                                       { return nil }
func (*httpLink) cause() error                                                { return nil }
func (*httpLink) close() error                                                { return nil }
