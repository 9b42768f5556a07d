# What tests of the site share. To be sourced after tap.sh.
# shellcheck shell=sh disable=SC2154
fixture_config
site() { # site STORE OUT - counts as JSON in $D/out
	ki export --store "$1" --format site --out "$2" --config "$CONFIG" --json
}
page_of() { # page_of OUT DIGEST
	local hex=${2#sha256:}
	echo "$1/runs/$(echo "$hex" | cut -c1-2)/$hex.html"
}
links() { # links OUT - local links and sources that lead nowhere, and pages without a place they link to
	find "$1" -name '*.html' -print0 | xargs -0 perl -e '
		for my $file (@ARGV) {
			open my $in, "<", $file or die; local $/; my $text = <$in>; close $in;
			(my $folder = $file) =~ s|/[^/]*$||;
			while ($text =~ /(?:href|src)="([^"]*)"/g) {
				my $to = $1;
				next if $to =~ /^(?:https:|mailto:)/;
				$to =~ s/[?].*//;
				if ($to =~ /^#(.*)/) { print "$file: $to\n" unless $text =~ /id="\Q$1\E"/; next }
				$to =~ s/#.*//;
				print "$file: $to\n" unless -e "$folder/$to";
			}
		}'
}
foreign() { # foreign OUT - anything a browser would fetch from elsewhere
	grep -rhoE '(src|srcset|data|action|poster)="?(https?:)?//[^ >]*|<(iframe|object|embed|img|link[^>]*https?:|base)[^>]*|url\([^)]*|@import[^;]*' "$1" --include='*.html' --include='*.css'
}
facts() { # facts RECORD PAGE - each line of standard input stands on the page
	while IFS= read -r fact; do
		has "$2" "$fact" "record $1: $fact"
	done
}
stamps() { # stamps OUT - every file with its time and size
	(cd "$1" && find . -type f -printf '%p %T@ %s\n' | sort)
}
written_once() { # written_once STORE OUT - leaves the stamps of its files in $D/before
	stamps "$2" >"$D/before"
	site "$1" "$2"
	stamps "$2" >"$D/after"
	is "$(jq -c .written "$D/out")" 0 'a second export writes nothing'
	same "$D/before" "$D/after" 'and every file keeps its bytes and its time'
}
whole() { # whole OUT - what holds for every page of every site
	local name
	name=$(basename "$1")
	is "$(links "$1" | head -3)" '' "every link within $name resolves"
	is "$(foreign "$1" | head -3)" '' "nothing in $name is fetched from elsewhere"
	is "$(find "$1" -name '*.html' -exec grep -LE '^<html lang="en">' {} + | wc -l | tr -d ' ')" 0 "every page of $name says its language"
	is "$(find "$1" -name '*.html' -exec grep -c '<h1>' {} \; | sort -u)" 1 "every page of $name has one heading of the first level"
	if have tidy; then
		find "$1" -name '*.html' -exec tidy -q -e --drop-empty-elements no {} + >"$D/tidy" 2>&1
		is "$(head -3 "$D/tidy")" '' "tidy has nothing to say about any page of $name"
	else
		skip "tidy has nothing to say about any page of $name" 'tidy is not installed'
	fi
}
