package serve

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store/files"
)

// certificateFiles is a certificate that is reloaded when its files change.
type certificateFiles struct {
	certPath, keyPath string
	logger            *slog.Logger
	loaded            atomic.Pointer[tls.Certificate]
}

// watchExpiry adds the expiry of the certificate to the metrics.
func watchExpiry(registry *prometheus.Registry, security *tls.Config) {
	if security == nil {
		return
	}
	promauto.With(registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "providerd_certificate_expiry_timestamp_seconds",
		Help: "When the certificate of the server expires.",
	}, func() float64 {
		// The certificate of the files never has an error.
		certificate, _ := security.GetCertificate(nil)
		return float64(certificate.Leaf.NotAfter.Unix())
	})
}

// LoadCertificate loads a certificate chain and its key, both in PEM. It returns console.ErrCertificate.
func LoadCertificate(certPath, keyPath string) (tls.Certificate, error) {
	chain, err := files.ReadSmall(certPath)
	key, keyErr := files.ReadSmall(keyPath)
	var certificate tls.Certificate
	if err = cmp.Or(err, keyErr); err == nil {
		certificate, err = tls.X509KeyPair(chain, key)
	}
	rest := chain
	for block := new(pem.Block); err != nil && block != nil; block, rest = pem.Decode(rest) {
		if _, restErr := tls.X509KeyPair(rest, key); restErr == nil {
			err = errors.New("the chain must begin with the certificate of the key, before the certificates of its CAs")
		}
	}
	if err != nil && bytes.Contains(key, []byte("ENCRYPTED")) {
		err = errors.New(`the private key is encrypted and must be decrypted with "openssl pkey"`)
	}
	if err != nil {
		err = fmt.Errorf("%w: %s and %s: %w", console.ErrCertificate, console.Source("tls-cert", certPath),
			console.Source("tls-key", keyPath), err)
	}
	return certificate, err
}

// newTLSConfig loads the certificate. It returns nil, for plain HTTP, if the paths are empty.
func newTLSConfig(certPath, keyPath string, logger *slog.Logger) (*tls.Config, error) {
	if certPath == "" {
		return nil, nil //nolint:nilnil // Nil means plain HTTP, as in net/http.
	}
	certificate, err := LoadCertificate(certPath, keyPath)
	if err != nil {
		return nil, err
	}
	f := &certificateFiles{certPath: certPath, keyPath: keyPath, logger: logger}
	f.loaded.Store(&certificate)
	if info, err := os.Stat(keyPath); err == nil && info.Mode().Perm()&0o004 != 0 {
		logger.Warn("other users can read the private key; run chmod 600 on it", slog.String("path", keyPath))
	}
	f.warnIfExpired()
	go f.watch()
	current := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.loaded.Load(), nil }
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: current}, nil
}

// watch reloads the files as long as the process runs. The previous certificate stays while they cannot be loaded: when
// one file after the other is replaced, they do not match.
func (f *certificateFiles) watch() {
	var reported string
	// Twice a second, so that a change is served within one.
	for range time.Tick(time.Second / 2) {
		certificate, err := LoadCertificate(f.certPath, f.keyPath)
		if err != nil {
			if err.Error() != reported {
				reported = err.Error()
				f.logger.Error("keeping the previous certificate", slog.String("error", reported))
			}
			continue
		}
		reported = ""
		previous := f.loaded.Swap(&certificate)
		if !slices.EqualFunc(certificate.Certificate, previous.Certificate, bytes.Equal) {
			f.logger.Info("reloaded certificate", slog.String("path", f.certPath))
			f.warnIfExpired()
		}
	}
}

func (f *certificateFiles) warnIfExpired() {
	if expiry := f.loaded.Load().Leaf.NotAfter; time.Now().After(expiry) {
		f.logger.Warn("the certificate has expired, so clients refuse connections; renew it, and the server reloads it",
			slog.String("path", f.certPath), slog.Time("expired_at", expiry))
	}
}

// warnOfPlainHTTP warns if plain HTTP is served on an address that other machines can reach.
func warnOfPlainHTTP(log *serveLog, address net.Addr) {
	if tcp, ok := address.(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		log.messages.Warn("tokens and secrets cross the network in plain HTTP, because %s is not a loopback "+
			"address; pass --tls-cert and --tls-key, or listen on 127.0.0.1 behind a TLS proxy", address)
	}
}
