"""The one address of the example."""

from agent import views
from django.urls import path

urlpatterns = [path("threads/<str:thread_id>/messages", views.messages)]
