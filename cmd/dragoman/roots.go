package main

// Certificates of public authorities for where the system has none, such as a
// container made from nothing. The system's own, and SSL_CERT_FILE, go before
// them.
import _ "golang.org/x/crypto/x509roots/fallback"
