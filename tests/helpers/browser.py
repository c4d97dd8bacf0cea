"""A real browser, for tests of pages: Debian's Chromium, driven by its own driver."""

import json
import os
import shutil
from base64 import b64decode
from contextlib import contextmanager

import pytest

FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--hide-scrollbars",
]
IN_CI = os.environ.get("CI") == "true"


def need_browser():
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if missing:
        reason = f"{' and '.join(missing)} not found; `make browser` installs Debian's packages."
        pytest.fail(reason) if IN_CI else pytest.skip(reason)


@contextmanager
def browsing(profile):
    need_browser()
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in [*FLAGS, f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    browser = webdriver.Chrome(options=options, service=service)
    try:
        yield browser
    finally:
        browser.quit()


def show_as(driver, width, scheme="light"):
    """Become a screen of some width; a narrow one is a phone's."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def open_page(driver, path, width, scheme="light"):
    """Open the page as a screen of some width and wait until all charts are drawn."""
    from selenium.webdriver.support.ui import WebDriverWait

    show_as(driver, width, scheme)
    driver.get_log("browser")
    driver.get_log("performance")
    driver.get(path.as_uri())
    ready = "return document.documentElement.dataset.ready === 'true'"
    WebDriverWait(driver, 120).until(lambda d: d.execute_script(ready))


def screenshot(driver, file):
    # Of the page itself, which may run no script.
    size = driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
    options = {"captureBeyondViewport": True, "clip": clip}
    picture = driver.execute_cdp_cmd("Page.captureScreenshot", options)["data"]
    file.write_bytes(b64decode(picture))
    assert file.stat().st_size > 50_000


def requests(driver):
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
