# Manual pages, installation, the Debian package. Everything goes under DESTDIR; units name BINDIR.
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
BINDIR     := $(PREFIX)/bin
SHARE      := $(PREFIX)/share
UNITDIR    ?= $(PREFIX)/lib/systemd/system
PUT        := install -m 644
VERSION     = $(shell sed -n 's/.define KI_VERSION "\(.*\)"/\1/p' core/home.h)

man: all
	@rm -rf $(B)/man
	packaging/man/make.sh $(B)/bin $(B)/man

# An operator's config is kept: where it differs from ours, ours is put beside it as NAME.new.
install: all man
	install -d $(addprefix $(DESTDIR),$(BINDIR) $(SYSCONFDIR)/kernelindex $(SHARE)/man/man1 $(SHARE)/man/man5 $(SHARE)/kernelindex/schemas \
	  $(SHARE)/bash-completion/completions $(SHARE)/zsh/vendor-completions $(SHARE)/fish/vendor_completions.d $(UNITDIR) \
	  $(PREFIX)/lib/sysusers.d $(PREFIX)/lib/tmpfiles.d $(SHARE)/doc/kernelindex/examples)
	install -m 755 $(BINS) $(DESTDIR)$(BINDIR)
	@for f in config/*.json; do \
	  to=$(DESTDIR)$(SYSCONFDIR)/kernelindex/$${f##*/}; \
	  [ ! -e $$to ] || cmp -s $$f $$to || { echo "$$to was changed here: kept, see $$to.new"; to=$$to.new; }; \
	  $(PUT) $$f $$to || exit 1; done
	$(PUT) $(B)/man/*.1 $(DESTDIR)$(SHARE)/man/man1
	$(PUT) $(B)/man/*.5 $(DESTDIR)$(SHARE)/man/man5
	$(PUT) docs/schemas/*.json $(DESTDIR)$(SHARE)/kernelindex/schemas
	install -m 755 verify/capture.py verify/child.py $(DESTDIR)$(SHARE)/kernelindex
	$(PUT) $(filter-out verify/capture.py verify/child.py,$(wildcard verify/*.py)) $(DESTDIR)$(SHARE)/kernelindex
	$(PUT) packaging/completions/ki.bash $(DESTDIR)$(SHARE)/bash-completion/completions/ki
	@for p in ki-ingest ki-normalize ki-store ki-verify; do ln -sf ki $(DESTDIR)$(SHARE)/bash-completion/completions/$$p; done
	$(PUT) packaging/completions/_ki $(DESTDIR)$(SHARE)/zsh/vendor-completions
	$(PUT) packaging/completions/ki.fish $(DESTDIR)$(SHARE)/fish/vendor_completions.d
	sed 's|@BINDIR@|$(BINDIR)|; s|@SYSCONFDIR@|$(SYSCONFDIR)|' packaging/systemd/kernelindex.service.in >$(DESTDIR)$(UNITDIR)/kernelindex.service
	chmod 644 $(DESTDIR)$(UNITDIR)/kernelindex.service
	$(PUT) packaging/systemd/kernelindex.timer $(DESTDIR)$(UNITDIR)
	$(PUT) packaging/kernelindex.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/kernelindex.conf
	$(PUT) packaging/kernelindex.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/kernelindex.conf
	$(PUT) packaging/kernelindex.cron $(DESTDIR)$(SHARE)/doc/kernelindex/examples
	$(PUT) README.md SECURITY.md CHANGELOG.md docs/*.md $(DESTDIR)$(SHARE)/doc/kernelindex

# The package, without the CUDA device; wants debhelper. Result: build/deb/*.deb
deb:
	rm -rf build/deb
	mkdir -p build/deb/kernelindex-$(VERSION)
	cp -a $(filter-out build var,$(wildcard *)) build/deb/kernelindex-$(VERSION)
	cp -a packaging/debian build/deb/kernelindex-$(VERSION)/debian
	cd build/deb/kernelindex-$(VERSION) && dpkg-buildpackage -b -us -uc
# Installs the package in a fresh Debian 12, runs a night as its user, purges it; wants root, debootstrap and a network.
deb-test:
	packaging/deb-test.sh build/deb/kernelindex_$(VERSION)-*.deb

.PHONY: man install deb deb-test
